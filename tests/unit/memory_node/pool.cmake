farkv_test(page_pool_test
  SRCS page_pool_test.cc pool_filler_test.cc
  DEPS farkv_memory_node_pool
  LABELS unit cpu)
