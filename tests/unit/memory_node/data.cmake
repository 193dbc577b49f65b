farkv_test(memory_node_data_test
  SRCS attend_test.cc data_plane_test.cc peer_shares_test.cc peer_table_test.cc reply_shares_test.cc row_copy_test.cc
       scrubber_test.cc t2_fetch_test.cc t2_rows_test.cc waiting_attends_test.cc
  DEPS farkv_memory_node_data farkv_memory_node_compress
  LABELS unit cpu tsan)
farkv_test(decide_test
  SRCS decide_errors_test.cc decide_test.cc eviction_log_test.cc
  DEPS farkv_memory_node_data farkv_memory_node_compress hwy::hwy
  LABELS unit cpu tsan)
