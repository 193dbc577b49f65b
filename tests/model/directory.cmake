farkv_test(directory_model_test
  SRCS directory_model_test.cc
  DEPS farkv_memory_node_directory
  LABELS model cpu)
