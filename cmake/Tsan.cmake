# farkv_tsan_absl: makes absl::Mutex and friends visible to ThreadSanitizer
# (cmake/tsan_absl.cc says how). Only for FARKV_SANITIZER=thread.
set(farkv_tsan_source ${CMAKE_CURRENT_LIST_DIR}/tsan_absl.cc)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
  ${farkv_tsan_source})
file(READ ${farkv_tsan_source} text)
string(REGEX MATCHALL "_ZNK?4absl[A-Za-z0-9_]+" symbols "${text}")

add_library(farkv_tsan_absl STATIC ${farkv_tsan_source})
target_compile_options(farkv_tsan_absl PRIVATE -fsanitize=thread)
foreach(symbol IN LISTS symbols)
  target_link_options(farkv_tsan_absl INTERFACE -Wl,--wrap=${symbol})
endforeach()
