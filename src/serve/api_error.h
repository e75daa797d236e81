// What a request is refused with, in the form that clients of OpenAI's interface read.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>

namespace snug::serve {

// Statuses of HTTP.
inline constexpr int kBadRequest = 400;
inline constexpr int kUnauthorized = 401;
inline constexpr int kForbidden = 403;
inline constexpr int kNotFound = 404;
inline constexpr int kWrongMethod = 405;
inline constexpr int kTooMany = 429;
inline constexpr int kInternal = 500;
inline constexpr int kUnavailable = 503;
inline constexpr int kTimeout = 504;

class ApiError : public std::runtime_error {
 public:
  // `field`: the key of the request that is at fault; empty: none. `code`: a word for programs.
  ApiError(int status, const std::string& message, std::string field = "", std::string code = "")
      : std::runtime_error(message),
        status_(status),
        field_(std::move(field)),
        code_(std::move(code)) {}

  int status() const { return status_; }
  // {"error": {"message", "type", "param", "code"}}
  nlohmann::ordered_json json() const;

 private:
  int status_;
  std::string field_;
  std::string code_;
};

// JSON text on one line; bytes that are not UTF-8 become U+FFFD.
std::string one_line(const nlohmann::ordered_json& json);

}  // namespace snug::serve
