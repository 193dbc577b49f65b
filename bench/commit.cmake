# Writes OUTPUT, a header that names the commit of SOURCE_DIR; untouched when
# the commit is the same, so that nothing is compiled again.
execute_process(
  COMMAND git --no-optional-locks describe --always --dirty --abbrev=12
    --exclude=*
  WORKING_DIRECTORY ${SOURCE_DIR}
  OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE
  ERROR_QUIET RESULT_VARIABLE result)
if(NOT result EQUAL 0)
  set(commit "unknown")
endif()
set(text "// Generated.
#pragma once
namespace farkv::bench {
inline constexpr const char* kCommit = \"${commit}\";
}  // namespace farkv::bench
")
set(before "")
if(EXISTS ${OUTPUT})
  file(READ ${OUTPUT} before)
endif()
if(NOT text STREQUAL before)
  file(WRITE ${OUTPUT} "${text}")
endif()
