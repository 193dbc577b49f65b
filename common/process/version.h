// The release of this program, as --version and handshakes show it. Pure.
#ifndef FARKV_COMMON_PROCESS_VERSION_H_
#define FARKV_COMMON_PROCESS_VERSION_H_

namespace farkv {

const char* SoftwareVersion();

}  // namespace farkv

#endif  // FARKV_COMMON_PROCESS_VERSION_H_
