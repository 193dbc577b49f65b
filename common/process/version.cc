#include "common/process/version.h"

namespace farkv {

const char* SoftwareVersion() { return FARKV_VERSION; }

}  // namespace farkv
