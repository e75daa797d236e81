// The data of make demo-chat are what examples/chat/README.md says: every answer is one line of the
// form, no thing of the held-out messages occurs in the training ones, and no message is another
// one in other words. Otherwise its figure would measure memory.
#include "../source_folder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <string>
#include <vector>

namespace snug {
namespace {

struct Order {
  std::string message;
  std::string item;
};

std::vector<Order> orders_of(const std::string& name) {
  const std::regex form(
      "ITEM: ([^|]+) \\| COUNT: ([1-9][0-9]*) \\| DAY: "
      "(any|today|tomorrow|(Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day)");
  std::ifstream stream(std::filesystem::path(test::source_folder()) / "examples/chat" / name);
  std::vector<Order> orders;
  for (std::string line; std::getline(stream, line);) {
    const auto messages = nlohmann::json::parse(line)["messages"];
    EXPECT_EQ(messages.size(), 2U) << line;
    EXPECT_EQ(messages[0]["role"], "user");
    EXPECT_EQ(messages[1]["role"], "assistant");
    const auto answer = messages[1]["content"].get<std::string>();
    std::smatch found;
    EXPECT_TRUE(std::regex_match(answer, found, form)) << answer;
    orders.push_back({messages[0]["content"].get<std::string>(), found[1]});
  }
  return orders;
}

// Runs of three words.
std::set<std::string> runs_of(const std::string& message) {
  std::vector<std::string> words(1);
  for (const char c : message) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '\'')
      words.back() += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    else if (!words.back().empty())
      words.emplace_back();
  }
  if (words.back().empty()) words.pop_back();
  std::set<std::string> runs;
  for (size_t i = 0; i + 2 < words.size(); ++i)
    runs.insert(words[i] + " " + words[i + 1] + " " + words[i + 2]);
  return runs;
}

TEST(ChatExample, HasOrdersOfManyThings) {
  const std::vector<Order> train = orders_of("train.jsonl");
  const std::vector<Order> heldout = orders_of("heldout.jsonl");
  EXPECT_EQ(train.size(), 228U);
  EXPECT_EQ(heldout.size(), 60U);
  std::set<std::string> trained;
  for (const Order& order : train) trained.insert(order.item);
  for (const Order& order : heldout) EXPECT_FALSE(trained.contains(order.item)) << order.item;
}

TEST(ChatExample, HasNoMessageTwice) {
  std::vector<Order> all = orders_of("train.jsonl");
  const std::vector<Order> heldout = orders_of("heldout.jsonl");
  all.insert(all.end(), heldout.begin(), heldout.end());
  std::vector<std::set<std::string>> runs;
  for (const Order& order : all) runs.push_back(runs_of(order.message));
  for (size_t i = 0; i < all.size(); ++i)
    for (size_t j = 0; j < i; ++j) {
      EXPECT_NE(all[i].message, all[j].message);
      const auto shared = static_cast<size_t>(std::ranges::count_if(
          runs[i], [&](const std::string& run) { return runs[j].contains(run); }));
      EXPECT_LE(5 * shared, runs[i].size() + runs[j].size() - shared) << all[i].message << "\n"
                                                                      << all[j].message;
    }
}

}  // namespace
}  // namespace snug
