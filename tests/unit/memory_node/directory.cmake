farkv_test(directory_test
  SRCS directory_compress_test.cc directory_data_test.cc directory_pages_test.cc directory_plan_test.cc directory_test.cc
       lease_sweeper_test.cc
  DEPS farkv_memory_node_directory farkv_memory_node_compress
  LABELS unit cpu tsan)
