#include "base/json_parser.h"

#include "base/error.h"
#include "base/shown_text.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

namespace snug::base {
namespace {

using nlohmann::json;

// Hands the parser one byte after another and counts them, so that callbacks know the offset.
class CountingIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  CountingIterator(const char* at, size_t* count) : at_(at), count_(count) {}
  reference operator*() const { return *at_; }
  CountingIterator& operator++() {
    ++at_;
    ++*count_;
    return *this;
  }
  CountingIterator operator++(int) {
    CountingIterator before = *this;
    ++*this;
    return before;
  }
  bool operator==(const CountingIterator& other) const { return at_ == other.at_; }
  bool operator!=(const CountingIterator& other) const { return at_ != other.at_; }

 private:
  const char* at_;
  size_t* count_;
};

// nlohmann's "[json.exception.parse_error.101] parse error at line 1, column 2: syntax error ..."
// without the parts that the location already gives.
std::string plain_message(std::string_view message) {
  const size_t start = message.find(": ");
  return shown_text(start == std::string_view::npos ? message : message.substr(start + 2));
}

// Builds the document. nlohmann's own parser with callbacks is not used, since it scans all
// elements of an array after each one.
class Builder : public nlohmann::json_sax<json> {
 public:
  // `offset` is the number of bytes read so far.
  Builder(const JsonComplaint& complain, const JsonFilter& filter, const size_t& offset)
      : complain_(complain), filter_(filter), offset_(offset) {}

  json take() { return std::move(root_); }

  bool null() override { return value(nullptr); }
  bool boolean(bool read) override { return value(read); }
  bool number_integer(number_integer_t read) override { return value(read); }
  bool number_unsigned(number_unsigned_t read) override { return value(read); }
  bool number_float(number_float_t read, const string_t&) override { return value(read); }
  bool string(string_t& read) override { return value(std::move(read)); }
  bool binary(binary_t&) override { return false; }  // JSON has no binary values

  bool start_object(size_t) override { return open(json::object()); }
  bool start_array(size_t) override { return open(json::array()); }
  bool end_object() override { return close(Event::object_end); }
  bool end_array() override { return close(Event::array_end); }

  bool key(string_t& read) override {
    if (open_.back().value.contains(read))
      complain_(fmt::format("the key {} is given twice in one object; keep one of them",
                            json(read).dump()),
                offset_ - 1);
    key_ = std::move(read);
    if (filter_) {
      json name = key_;
      filter_(depth(), Event::key, name);
    }
    return true;
  }

  bool parse_error(size_t position, const std::string&,
                   const nlohmann::detail::exception& error) override {
    complain_("not valid JSON: " + plain_message(error.what()), position == 0 ? 0 : position - 1);
    return false;
  }

 private:
  using Event = json::parse_event_t;

  // An array or object that is not closed yet, and its key in the enclosing object.
  struct Open {
    json value;
    std::string key;
  };

  int depth() const { return static_cast<int>(open_.size()); }

  bool value(json read) {
    if (!filter_ || filter_(depth(), Event::value, read)) put(std::move(read), std::move(key_));
    return true;
  }

  bool open(json empty) {
    if (depth() == kMaxJsonDepth)
      complain_(fmt::format("values nest deeper than {}, the most that snug reads; is it damaged?",
                            kMaxJsonDepth),
                offset_ - 1);
    open_.push_back({std::move(empty), std::move(key_)});
    return true;
  }

  bool close(Event event) {
    Open closed = std::move(open_.back());
    open_.pop_back();
    if (!filter_ || filter_(depth(), event, closed.value))
      put(std::move(closed.value), std::move(closed.key));
    return true;
  }

  void put(json read, std::string key) {
    if (open_.empty())
      root_ = std::move(read);
    else if (json& around = open_.back().value; around.is_array())
      around.push_back(std::move(read));
    else
      around.emplace(std::move(key), std::move(read));
  }

  const JsonComplaint& complain_;
  const JsonFilter& filter_;
  const size_t& offset_;
  std::vector<Open> open_;
  std::string key_;  // the key of the value that comes next
  json root_;
};

}  // namespace

json parse_json_value(std::string_view text, const JsonComplaint& complain,
                      const JsonFilter& filter) {
  size_t offset = 0;
  Builder builder(complain, filter, offset);
  const bool read = json::sax_parse(CountingIterator(text.data(), &offset),
                                    CountingIterator(text.data() + text.size(), &offset), &builder);
  SNUG_CHECK(read, "the complaint about a text that is no JSON came back");
  return builder.take();
}

// The first reading bounds how deep the text nests, and complains.
nlohmann::ordered_json parse_ordered_json(std::string_view text, const JsonComplaint& complain) {
  (void)parse_json_value(text, complain);
  return nlohmann::ordered_json::parse(text);
}

}  // namespace snug::base
