farkv_test(transport_loopback_conformance_test
  SRCS transport_loopback_test.cc
  DEPS farkv_transport LABELS "conformance;cpu;tsan")
farkv_test(transport_ucx_conformance_test
  SRCS transport_ucx_test.cc
  DEPS farkv_transport_ucx LABELS "conformance;cpu;ucx;tsan" TIMEOUT 300)
farkv_test(transport_faults_conformance_test
  SRCS transport_faults_test.cc
  DEPS farkv_transport_faults farkv_transport_ucx
  LABELS "conformance;cpu;ucx;tsan" TIMEOUT 300)
farkv_test(transport_ucx_peers_test
  SRCS transport_ucx_hostile_test.cc
  DEPS farkv_transport_ucx LABELS "conformance;cpu;ucx;tsan" TIMEOUT 300)
farkv_test(transport_ucx_death_test
  SRCS transport_ucx_death_test.cc transport_ucx_rendezvous_test.cc
  DEPS farkv_transport_ucx LABELS "conformance;cpu;ucx" TIMEOUT 300)
