// Counts the bytes that this thread has allocated, so that a test can show
// that a hostile count costs nothing. Replaces operator new in its program.
// Test only.
#ifndef FARKV_TESTS_UNIT_PAGE_ALLOCATION_METER_H_
#define FARKV_TESTS_UNIT_PAGE_ALLOCATION_METER_H_

#include <cstddef>

namespace farkv::testing {

size_t AllocatedBytes();  // of this thread, ever

}  // namespace farkv::testing

#endif  // FARKV_TESTS_UNIT_PAGE_ALLOCATION_METER_H_
