farkv_test(page_pool_model_test
  SRCS page_pool_model_test.cc
  DEPS farkv_memory_node_pool
  LABELS model cpu)
