#include "text/chat/jinja/values/json_values.h"

#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "base/error.h"

namespace snug::text::jinja {
namespace {

using nlohmann::json;

// Builds values from the events of nlohmann's parser.
class ValueBuilder : public nlohmann::json_sax<json> {
 public:
  bool null() override { return put(Value::none()); }
  bool boolean(bool read) override { return put(Value::boolean(read)); }
  bool number_integer(number_integer_t read) override { return put(Value::integer(read)); }
  bool number_unsigned(number_unsigned_t read) override {
    if (read > static_cast<uint64_t>(INT64_MAX)) too_large(std::to_string(read));
    return put(Value::integer(static_cast<int64_t>(read)));
  }
  bool number_float(number_float_t read, const string_t& written) override {
    if (written.find_first_of(".eE") == std::string::npos) too_large(written);
    return put(Value::real(read));
  }
  bool string(string_t& read) override { return put(Value::text(std::move(read))); }
  bool binary(binary_t&) override { return false; }

  bool start_object(size_t) override { return open(true); }
  bool start_array(size_t) override { return open(false); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(string_t& read) override {
    open_.back().key = std::move(read);
    return true;
  }
  bool parse_error(size_t, const std::string&, const nlohmann::detail::exception&) override {
    return false;
  }

  Value take() { return std::move(root_); }

 private:
  // An array or object that is not closed yet.
  struct Open {
    bool is_dict = false;
    List items{};
    Dict dict{};
    std::string key{};
  };

  [[noreturn]] static void too_large(const std::string& number) {
    fail(
        fmt::format("the number {} is beyond 64 bits, which chat templates are not given", number));
  }

  bool open(bool is_dict) {
    open_.push_back({.is_dict = is_dict});
    return true;
  }

  bool close() {
    Open closed = std::move(open_.back());
    open_.pop_back();
    return put(closed.is_dict ? Value::dict(std::move(closed.dict))
                              : Value::list(std::move(closed.items)));
  }

  bool put(Value value) {
    if (open_.empty()) {
      root_ = std::move(value);
    } else if (open_.back().is_dict) {
      open_.back().dict.set(Value::text(std::move(open_.back().key)), std::move(value));
    } else {
      open_.back().items.push_back(std::move(value));
    }
    return true;
  }

  Value root_;
  std::vector<Open> open_;
};

}  // namespace

Value value_of_json(std::string_view text) {
  ValueBuilder builder;
  const bool is_read = json::sax_parse(text, &builder);
  SNUG_CHECK(is_read, "JSON that was read before");
  return builder.take();
}

}  // namespace snug::text::jinja
