farkv_test(transport_loopback_conformance_test
  SRCS transport_loopback_test.cc
  DEPS farkv_transport LABELS "conformance;cpu;tsan")
