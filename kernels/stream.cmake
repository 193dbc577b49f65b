# The devices. farkv_stream brings the stand-in for the fake device along; a
# fault program or a test that wants the fake device links farkv_device_fake
# as well, directly, and its objects come before the stand-in's archive.
farkv_library(farkv_device_fake_absent SRCS device_fake_absent.cc
  DEPS farkv_base)
farkv_library(farkv_stream
  SRCS open_device.cc device_cpu.cc cuda_absent.cc kernel_target.cc
  DEPS farkv_base farkv_device_fake_absent
  PRIVATE_DEPS hwy::hwy)
add_library(farkv_device_fake OBJECT device_fake.cc)
target_link_libraries(farkv_device_fake PUBLIC farkv_options farkv_stream)
