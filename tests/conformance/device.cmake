farkv_test(device_conformance_test
  SRCS device_cpu_conformance_test.cc
       device_fake_conformance_test.cc
  DEPS farkv_device_fake farkv_stream farkv_elementwise
  LABELS conformance cpu tsan)
