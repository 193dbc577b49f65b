farkv_test(compressor_test
  SRCS compressor_test.cc
  DEPS farkv_memory_node_compress farkv_memory_node_directory
  LABELS unit cpu)
