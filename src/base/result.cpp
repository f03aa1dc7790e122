#include "base/result.hpp"

#include <cerrno>
#include <system_error>

namespace ddprof {

namespace {

ErrorCode code_of(int error_number) {
  switch (error_number) {
    case EACCES:
    case EPERM:
      return ErrorCode::permission_denied;
    case ENOENT:
    case ESRCH:
      return ErrorCode::not_found;
    case EINVAL:
      return ErrorCode::invalid_argument;
    case ENOSYS:
    case EOPNOTSUPP:
    case ENODEV:
      return ErrorCode::unsupported;
    case ENOMEM:
    case EMFILE:
    case ENFILE:
    case ENOSPC:
    case EDQUOT:
      return ErrorCode::exhausted;
    default:
      return ErrorCode::failed;
  }
}

}  // namespace

Error errno_error(int error_number, std::string operation) {
  return Error{code_of(error_number),
               std::move(operation) + ": " + std::generic_category().message(error_number)};
}

}  // namespace ddprof
