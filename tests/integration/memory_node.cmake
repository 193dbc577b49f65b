farkv_test(memory_node_test
  SRCS ${CMAKE_CURRENT_SOURCE_DIR}/memory_node_test.cc
  DEPS farkv_in_process_node farkv_mapping farkv_rpc farkv_settled
  LABELS integration cpu ucx)
