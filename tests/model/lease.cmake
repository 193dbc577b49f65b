farkv_test(lease_exhaustive_test
  SRCS lease_exhaustive_test.cc lease_world.cc lease_world_audit.cc
    lease_world_rows.cc
  DEPS farkv_memory_node_directory
  LABELS model cpu)
