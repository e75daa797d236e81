// Sources: RFC 3339 (dates and times), RFC 9562 (UUIDs), RFC 1123 (hosts), RFC 3986 (URIs), RFC
// 5321 (addresses, without quoted ones), ISO 8601 (durations).
#include "text/grammar/string_format.h"

#include <fmt/format.h>

#include <array>
#include <utility>

namespace snug::text {
namespace {

// Of February only years that 4 divides have 29 days, and of full centuries those that 400 does.
constexpr std::string_view kDate =
    "([0-9]{4}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|"
    "02-(0[1-9]|1[0-9]|2[0-8]))|"
    "([0-9]{2}(0[48]|[2468][048]|[13579][26])|([02468][048]|[13579][26])00)-02-29)";
constexpr std::string_view kTime =
    "([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\\.[0-9]{1,9})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])";
constexpr std::string_view kHostLabel = "[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?";
constexpr std::string_view kByte = "(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])";
constexpr std::string_view kUuid =
    "[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}";
constexpr std::string_view kAtom = "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+";
constexpr std::string_view kPathCharacter = "([A-Za-z0-9._~!$&'()*+,;=:@-]|%[0-9A-Fa-f]{2})";
constexpr std::string_view kDuration =
    "P([0-9]+W|[0-9]+D(T[0-9]+[HMS])?|[0-9]+Y([0-9]+M([0-9]+D)?)?|[0-9]+M([0-9]+D)?|"
    "T([0-9]+H([0-9]+M([0-9]+S)?)?|[0-9]+M([0-9]+S)?|[0-9]+S))";

constexpr std::array<std::string_view, 9> kFormats = {
    "date", "time", "date-time", "duration", "uuid", "ipv4", "hostname", "email", "uri"};

}  // namespace

std::optional<std::string> pattern_of_format(std::string_view format) {
  const std::string host = fmt::format("{0}(\\.{0}){{0,3}}", kHostLabel);
  if (format == "date") return std::string(kDate);
  if (format == "time") return std::string(kTime);
  if (format == "date-time") return fmt::format("{}T{}", kDate, kTime);
  if (format == "duration") return std::string(kDuration);
  if (format == "uuid") return std::string(kUuid);
  if (format == "ipv4") return fmt::format("{0}\\.{0}\\.{0}\\.{0}", kByte);
  if (format == "hostname") return host;
  if (format == "email") return fmt::format("{0}(\\.{0})*@{1}", kAtom, host);
  if (format == "uri")
    return fmt::format(
        "[A-Za-z][A-Za-z0-9+.-]*://{0}(:[0-9]{{1,5}})?(/{1}*)*(\\?({1}|[/?])*)?(#({1}|[/?])*)?",
        host, kPathCharacter);
  return std::nullopt;
}

std::string known_formats() {
  std::string names;
  for (const std::string_view format : kFormats) {
    names += names.empty() ? "" : ", ";
    names += format;
  }
  return names;
}

}  // namespace snug::text
