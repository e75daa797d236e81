#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "text/jinja/compare.h"
#include "text/jinja/print.h"
#include "text/utf8.h"

namespace snug::text::jinja {
namespace {

using Kind = Value::Kind;

class JsonWriter {
 public:
  explicit JsonWriter(const JsonStyle& style) : style_(style) {}

  void write(const Value& value, int level) {
    switch (value.kind()) {
      case Kind::none:
        out_ += "null";
        break;
      case Kind::boolean:
        out_ += value.as_boolean() ? "true" : "false";
        break;
      case Kind::integer:
        out_ += std::to_string(value.as_integer());
        break;
      case Kind::real:
        out_ += number(value.as_real());
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

  std::string take() { return std::move(out_); }

 private:
  static std::string number(double value) {
    if (std::isnan(value)) return "NaN";
    if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
    return print_real(value);
  }

  void begin_item(bool is_first, int level) {
    if (!is_first) out_ += style_.item_separator;
    if (!style_.indent) return;
    out_ += '\n';
    for (int i = 0; i < level; ++i) out_ += *style_.indent;
  }

  void end_items(int level) {
    if (!style_.indent) return;
    out_ += '\n';
    for (int i = 0; i < level; ++i) out_ += *style_.indent;
  }

  void write_list(const List& items, int level) {
    if (items.empty()) {
      out_ += "[]";
      return;
    }
    out_ += '[';
    for (size_t i = 0; i < items.size(); ++i) {
      begin_item(i == 0, level + 1);
      write(items[i], level + 1);
    }
    end_items(level);
    out_ += ']';
  }

  void write_key(const Value& key) {
    if (key.is(Kind::text)) return write_text(key.as_text());
    if (!key.is_number() && !key.is(Kind::none))
      fail(fmt::format("tojson cannot write a key of the type {}", key.type_name()));
    out_ += '"';
    write(key, 0);
    out_ += '"';
  }

  void write_dict(const Dict& dict, int level) {
    if (dict.size() == 0) {
      out_ += "{}";
      return;
    }
    std::vector<Dict::Entry> entries = dict.entries();
    if (style_.sort_keys)
      std::stable_sort(entries.begin(), entries.end(),
                       [](const auto& a, const auto& b) { return less(a.first, b.first); });
    out_ += '{';
    for (size_t i = 0; i < entries.size(); ++i) {
      begin_item(i == 0, level + 1);
      write_key(entries[i].first);
      out_ += style_.key_separator;
      write(entries[i].second, level + 1);
    }
    end_items(level);
    out_ += '}';
  }

  void write_text(const std::string& text) {
    out_ += '"';
    for (size_t i = 0; i < text.size();) {
      const CodePoint c = code_point_at(text, i);
      write_character(c.value, std::string_view(text).substr(i, c.size));
      i += c.size;
    }
    out_ += '"';
  }

  void write_character(char32_t value, std::string_view bytes) {
    const auto code = static_cast<uint32_t>(value);
    constexpr std::string_view kShort = "\"\\\n\r\t\b\f";
    const size_t known = code < 0x80 ? kShort.find(static_cast<char>(code)) : std::string::npos;
    if (known != std::string::npos) {
      out_ += '\\';
      out_ += "\"\\nrtbf"[known];
    } else if (code < 0x20 || (style_.ensure_ascii && code > 0x7f && code < 0x10000)) {
      out_ += fmt::format("\\u{:04x}", code);
    } else if (style_.ensure_ascii && code >= 0x10000) {
      out_ += fmt::format("\\u{:04x}\\u{:04x}", 0xd800 + ((code - 0x10000) >> 10),
                          0xdc00 + ((code - 0x10000) & 0x3ff));
    } else {
      out_ += bytes;
    }
  }

  const JsonStyle& style_;
  std::string out_;
};

}  // namespace

std::string print_json(const Value& value, const JsonStyle& style) {
  JsonWriter writer(style);
  writer.write(value, 0);
  return writer.take();
}

}  // namespace snug::text::jinja
