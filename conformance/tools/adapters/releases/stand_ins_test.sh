#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# stand_ins_test.sh - a library that wants two of a GPU's is loaded with their
# stand-ins in place of them, by a loader that resolves all symbols at once, and
# is told an error.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
for tool in python3 readelf gcc; do
    command -v "$tool" >/dev/null || {
        echo "skip: no $tool"
        exit 77
    }
done
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
mkdir -p real wheel/torch/lib

# As they are where there is a GPU: one has versions, the other has none.
echo 'int cudaCount(void) { return 0; } int cuPlain(void) { return 0; }' >real.c
echo 'libcudart_12 { cudaCount; cuPlain; };' >real.map
gcc -shared -fPIC -o real/libcudart.so.12 real.c -Wl,-soname,libcudart.so.12 \
    -Wl,--version-script=real.map
echo 'int ncclCount(void) { return 0; }' >nccl.c
gcc -shared -fPIC -o real/libnccl.so.2 nccl.c -Wl,-soname,libnccl.so.2
cat >user.c <<'END'
int cudaCount(void);
int ncclCount(void);
int user(void) { return cudaCount() + ncclCount(); }
END
gcc -shared -fPIC -o wheel/torch/lib/libuser.so user.c real/libcudart.so.12 \
    real/libnccl.so.2
echo 'int user(void); int main(void) { return user(); }' >main.c
gcc -o main main.c wheel/torch/lib/libuser.so -Wl,-z,now \
    -Wl,--unresolved-symbols=ignore-all
path=wheel/torch/lib

run()
{
    code=0
    LD_LIBRARY_PATH=$1 LD_BIND_NOW=1 ./main 2>err || code=$?
}

run "$path"
if [ "$code" != 127 ] || ! grep -q 'libcudart.so.12' err; then
    echo "without any it is loaded: $code"
    cat err
    exit 1
fi
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$here python3 -c \
    'import stand_ins; print(*stand_ins.make("given", "wheel"))' >names
[ "$(cat names)" = 'libcudart.so.12 libnccl.so.2' ] || {
    echo "made: $(cat names)"
    exit 1
}
run "$path:given"
if [ "$code" != 200 ] || [ -s err ]; then
    echo "with stand-ins: $code, not twice the error 100"
    cat err
    exit 1
fi
readelf -W --dyn-syms given/libcudart.so.12 | grep -q 'cudaCount@@libcudart_12'
echo 'two libraries stood in'
