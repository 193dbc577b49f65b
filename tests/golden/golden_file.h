// Golden bytes: tests/golden/<name>.hex, as generate.py wrote them. Test only.
#ifndef FARKV_TESTS_GOLDEN_GOLDEN_FILE_H_
#define FARKV_TESTS_GOLDEN_GOLDEN_FILE_H_

#include <cstddef>
#include <string>
#include <vector>

namespace farkv::testing {

// Empty, with a test failure that names the file, when it cannot be read or
// holds anything but hex digits and white space.
std::vector<std::byte> GoldenBytes(const std::string& name);

// "offset 16: 01 != 02" for the first difference, or a difference in length;
// empty when equal.
std::string FirstDifference(const std::vector<std::byte>& found,
                            const std::vector<std::byte>& golden);

// The filler of golden payloads: byte i is (131 i + 17 (i / 256) + 7) mod 256.
std::vector<std::byte> Pattern(size_t count, size_t start = 0);

}  // namespace farkv::testing

#endif  // FARKV_TESTS_GOLDEN_GOLDEN_FILE_H_
