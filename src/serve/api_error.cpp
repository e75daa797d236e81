#include "serve/api_error.h"

namespace snug::serve {
namespace {

const char* type_of(int status) {
  switch (status) {
    case kUnauthorized:
      return "authentication_error";
    case kForbidden:
      return "permission_error";
    case kNotFound:
      return "not_found_error";
    case kTooMany:
      return "rate_limit_error";
    case kTimeout:
      return "timeout_error";
    default:
      return status >= kInternal ? "server_error" : "invalid_request_error";
  }
}

}  // namespace

nlohmann::ordered_json ApiError::json() const {
  const auto or_null = [](const std::string& text) {
    return text.empty() ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(text);
  };
  return {{"error",
           {{"message", what()},
            {"type", type_of(status_)},
            {"param", or_null(field_)},
            {"code", or_null(code_)}}}};
}

std::string one_line(const nlohmann::ordered_json& json) {
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace snug::serve
