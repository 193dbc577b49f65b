farkv_test(memory_node_service_test
  SRCS admin_codec_test.cc admin_service_test.cc host_memory_test.cc node_events_test.cc page_list_codec_test.cc plan_admission_test.cc
       watch_codec_test.cc
  DEPS farkv_memory_node_service farkv_memory_node_compress gRPC::grpc++
  LABELS unit cpu)
farkv_test(node_flags_test
  SRCS fill_report_test.cc node_flags_test.cc
  DEPS farkv_memory_node
  LABELS unit cpu)
