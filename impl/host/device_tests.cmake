# SPDX-License-Identifier: Apache-2.0
# The tests of the host's device, read by conformance/cmake/tests.cmake.
foreach(name host_stream_test host_stream_stress_test host_stream_wake_test
        host_device_test host_memory_test host_comm_test
        host_comm_stress_test)
    unit(impl/host/${name}.c LINK fsdp-host)
endforeach()
