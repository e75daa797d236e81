// The fields of a JSON object that a client sent. A field that nobody asked for is refused, so that
// nothing is ignored in silence. A field that is null counts as absent.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace snug::serve {

class RequestFields {
 public:
  // The body of a request. Throws ApiError where it is no JSON object.
  explicit RequestFields(std::string_view body);
  // An object in a field `name` of another one.
  RequestFields(const nlohmann::ordered_json& object, std::string name);

  // Null where the field is absent.
  const nlohmann::ordered_json* find(std::string_view name);
  // Nothing where the field is absent. Throw ApiError, which names the field, for another type and
  // for a value out of bounds.
  std::optional<int64_t> integer(std::string_view name, int64_t least, int64_t most);
  std::optional<double> number(std::string_view name, double least, double most);
  std::optional<bool> boolean(std::string_view name);
  std::optional<std::string> text(std::string_view name);
  // A text, or a list of at most `most` of them; empty where the field is absent.
  std::vector<std::string> texts(std::string_view name, size_t most);
  // An object; nothing where the field is absent.
  std::optional<RequestFields> object(std::string_view name);
  // A field that says who asks or how the answer is kept, which changes no answer.
  void pass_over(std::string_view name) { known_.emplace(name); }
  // A field for something that is not built: refused, unless it has the value that asks for
  // nothing.
  void not_built(std::string_view name, const nlohmann::ordered_json& harmless,
                 std::string_view advice);
  [[noreturn]] void refuse(std::string_view name, const std::string& problem) const;

  // Throws ApiError for a field that none of the above asked for.
  void refuse_others() const;

 private:
  std::string path(std::string_view name) const;

  nlohmann::ordered_json object_;
  std::string name_{};
  std::set<std::string, std::less<>> known_{};
};

}  // namespace snug::serve
