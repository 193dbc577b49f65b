farkv_test(shutdown_test
  SRCS ${CMAKE_CURRENT_SOURCE_DIR}/shutdown_test.cc
  DEPS farkv_integration LABELS integration TIMEOUT 300)
add_dependencies(shutdown_test farkv-memory-node farkv-memory-node-faults
  farkv-worker farkv-worker-faults farkv-bench farkv-bench-faults farkvctl)
