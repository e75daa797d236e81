#include "cli/search_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <regex>
#include <string_view>

#include "base/error.h"

namespace snug::cli {
namespace {

constexpr int64_t kMaxDevices = 4096;

// The parts between commas, which may stand in brackets as lists of a recipe do.
std::vector<std::string> split(std::string text) {
  if (text.starts_with('[') && text.ends_with(']')) text = text.substr(1, text.size() - 2);
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const size_t first = text.find_first_not_of(' ', begin);
    const size_t last = text.find_last_not_of(' ', end == 0 ? 0 : end - 1);
    parts.push_back(first < end && last != std::string::npos ? text.substr(first, last - first + 1)
                                                             : std::string());
    begin = end + 1;
  }
  return parts;
}

int64_t count_of(const std::string& digits, const std::string& part) {
  if (digits.empty()) return 1;
  const int64_t count = digits.size() > 6 ? kMaxDevices + 1 : std::stoll(digits);
  if (count < 1 || count > kMaxDevices)
    base::throw_user_error("machines: '{}' has a number that is not from 1 to {}", part,
                           kMaxDevices);
  return count;
}

SearchMachine machine_of(const std::string& part) {
  static const std::regex form("(?:(?:([0-9]+) *x *)?([0-9]+) *x *)?([a-z][a-z0-9._-]*)",
                               std::regex::icase);
  std::smatch match;
  if (!std::regex_match(part, match, form))
    base::throw_user_error(
        "machines: '{}' is no machine; write the number of cards and their name, as in "
        "machines=\"2x rtx-3090, 8x h100\", or 2x 8x h100 for two machines of eight",
        part);
  return {count_of(match[1], part), count_of(match[2], part), match[3]};
}

double positive_number(std::string_view key, const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value) ||
      value <= 0)
    base::throw_user_error("'{}' is '{}', which is no number above 0", key, text);
  return value;
}

const std::string& named_file(std::string_view key, const std::string& value) {
  if (value.empty()) base::throw_user_error("'{}' is empty; give the name of a file", key);
  return value;
}

RankBy rank_of(const std::string& text) {
  if (const auto rank = base::from_word<RankBy>(text)) return *rank;
  base::throw_user_error("'rank_by' is '{}'; it is one of {}", text,
                         fmt::join(base::all_words<RankBy>(), ", "));
}

template <typename T>
void add_once(std::vector<T>& list, T value) {
  if (std::ranges::find(list, value) == list.end()) list.push_back(std::move(value));
}

void set_machines(SearchOptions& options, const std::string& value) {
  for (const std::string& part : split(value)) add_once(options.machines, machine_of(part));
}

void set_methods(SearchOptions& options, const std::string& value) {
  for (const std::string& part : split(value)) {
    const auto method = base::from_word<formats::Method>(part);
    if (!method)
      base::throw_user_error("method: '{}' is no method; it is one of {}", part,
                             fmt::join(base::all_words<formats::Method>(), ", "));
    add_once(options.methods, *method);
  }
}

// A single method is a value of the recipe's own key `method`.
bool names_several(const std::string& key, const std::string& value) {
  return key == "method" && value.find(',') != std::string::npos;
}

// Takes the value if the key is one of the search's own keys; returns whether it is.
bool take(SearchOptions& options, const std::string& key, const std::string& value) {
  if (key == "machines")
    set_machines(options, value);
  else if (names_several(key, value))
    set_methods(options, value);
  else if (key == "rank_by")
    options.rank_by = rank_of(value);
  else if (key == "price_per_hour")
    options.price_per_hour = positive_number(key, value);
  else if (key == "job_tokens")
    options.job_tokens = positive_number(key, value);
  else if (key == "recipe_out")
    options.recipe_out = named_file(key, value);
  else
    return false;
  return true;
}

}  // namespace

std::string SearchMachine::text() const {
  if (nodes > 1) return fmt::format("{}x {}x {}", nodes, devices, device);
  return devices > 1 ? fmt::format("{}x {}", devices, device) : device;
}

SearchOptions take_search_options(Request& request) {
  SearchOptions options;
  request.take_words(
      [&](const std::string& key, const std::string& value) { return take(options, key, value); });
  for (const char* key : {"device=", "devices=", "nodes="})
    for (const std::string& word : request.overrides)
      if (!options.machines.empty() && word.starts_with(key))
        base::throw_user_error("'{}' and machines both say which machine it is; give one", word);
  return options;
}

std::string search_help() {
  return fmt::format(
      "search:\n"
      "  machines=\"2x rtx-3090, 8x h100\"\n"
      "      machines to compare, named as in the hardware table; 2x 8x h100 is two machines with\n"
      "      eight cards each (default: device, devices and nodes, or this machine)\n"
      "  method=lora,qlora\n"
      "      several methods to compare\n"
      "  rank_by={}\n"
      "      the order of the plans (default {})\n"
      "  price_per_hour=NUMBER\n"
      "      of one card, in US dollars (default: the hardware table's lowest)\n"
      "  job_tokens=NUMBER\n"
      "      tokens that the job trains on, for the hours that are shown (default: rows of data x\n"
      "      max_length x num_train_epochs)\n"
      "  recipe_out=FILE\n"
      "      write the best recipe to this file\n"
      "  A plan's keys that are given are kept. If they are not given, strategy, prefetch,\n"
      "  recompute, activation_offloading, offload_params, offload_optimizer and the micro-batch\n"
      "  are chosen. With per_device_train_batch_size or gradient_accumulation_steps, a step "
      "keeps\n"
      "  its number of rows.\n\n",
      fmt::join(base::all_words<RankBy>(), "|"), base::word_of(RankBy::tokens_per_second));
}

}  // namespace snug::cli
