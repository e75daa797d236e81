#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "text/chat/jinja/values/compare.h"
#include "text/chat/jinja/values/print.h"
#include "text/unicode/utf8.h"

namespace snug::text::jinja {
namespace {

using Kind = Value::Kind;

class JsonWriter {
 public:
  explicit JsonWriter(const JsonStyle& style) : style_(style) {}

  void write(const Value& value, int level) {
    switch (value.kind()) {
      case Kind::none:
        out_.add("null");
        break;
      case Kind::boolean:
        out_.add(value.as_boolean() ? "true" : "false");
        break;
      case Kind::integer:
        out_.add(std::to_string(value.as_integer()));
        break;
      case Kind::real:
        out_.add(number(value.as_real()));
        break;
      case Kind::text:
        write_text(value.as_text());
        break;
      case Kind::list:
      case Kind::tuple:
        write_list(value.items(), level);
        break;
      case Kind::dict:
        write_dict(value.as_dict(), level);
        break;
      default:
        fail(fmt::format("tojson cannot write a value of the type {}", value.type_name()));
    }
  }

  Value take() { return out_.take_value(); }

 private:
  static std::string number(double value) {
    if (std::isnan(value)) return "NaN";
    if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
    return print_real(value);
  }

  void begin_item(bool is_first, int level) {
    if (!is_first) out_.add(style_.item_separator);
    if (!style_.indent) return;
    out_.add('\n');
    out_.add_times(*style_.indent, level);
  }

  void end_items(int level) {
    if (!style_.indent) return;
    out_.add('\n');
    out_.add_times(*style_.indent, level);
  }

  void write_list(const List& items, int level) {
    charge_steps(static_cast<int64_t>(items.size()));
    if (items.empty()) {
      out_.add("[]");
      return;
    }
    out_.add('[');
    for (size_t i = 0; i < items.size(); ++i) {
      begin_item(i == 0, level + 1);
      write(items[i], level + 1);
    }
    end_items(level);
    out_.add(']');
  }

  void write_key(const Value& key) {
    if (key.is(Kind::text)) return write_text(key.as_text());
    if (!key.is_number() && !key.is(Kind::none))
      fail(fmt::format("tojson cannot write a key of the type {}", key.type_name()));
    out_.add('"');
    write(key, 0);
    out_.add('"');
  }

  void write_dict(const Dict& dict, int level) {
    charge_steps(static_cast<int64_t>(dict.size()));
    if (dict.size() == 0) {
      out_.add("{}");
      return;
    }
    Dict::Entries entries = dict.entries();
    if (style_.sort_keys)
      std::stable_sort(entries.begin(), entries.end(),
                       [](const auto& a, const auto& b) { return less(a.first, b.first); });
    out_.add('{');
    for (size_t i = 0; i < entries.size(); ++i) {
      begin_item(i == 0, level + 1);
      write_key(entries[i].first);
      out_.add(style_.key_separator);
      write(entries[i].second, level + 1);
    }
    end_items(level);
    out_.add('}');
  }

  void write_text(std::string_view text) {
    charge_steps(text.size(), kWalkedPerStep);
    out_.add('"');
    for (size_t i = 0; i < text.size();) {
      const CodePoint c = code_point_at(text, i);
      write_character(c.value, text.substr(i, c.size));
      i += c.size;
    }
    out_.add('"');
  }

  void write_character(char32_t value, std::string_view bytes) {
    const auto code = static_cast<uint32_t>(value);
    constexpr std::string_view kShort = "\"\\\n\r\t\b\f";
    const size_t known = code < 0x80 ? kShort.find(static_cast<char>(code)) : std::string::npos;
    if (known != std::string::npos) {
      out_.add('\\');
      out_.add("\"\\nrtbf"[known]);
    } else if (code < 0x20 || (style_.ensure_ascii && code > 0x7f && code < 0x10000)) {
      out_.add(fmt::format("\\u{:04x}", code));
    } else if (style_.ensure_ascii && code >= 0x10000) {
      out_.add(fmt::format("\\u{:04x}\\u{:04x}", 0xd800 + ((code - 0x10000) >> 10),
                           0xdc00 + ((code - 0x10000) & 0x3ff)));
    } else {
      out_.add(bytes);
    }
  }

  const JsonStyle& style_;
  TextBuilder out_;
};

}  // namespace

Value print_json(const Value& value, const JsonStyle& style) {
  JsonWriter writer(style);
  writer.write(value, 0);
  return writer.take();
}

}  // namespace snug::text::jinja
