farkv_library(farkv_in_process_node
  SRCS ${CMAKE_CURRENT_SOURCE_DIR}/in_process_node.cc
  DEPS farkv_memory_node farkv_transport farkv_transport_ucx)
