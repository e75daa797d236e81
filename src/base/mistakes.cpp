#include "base/mistakes.h"

#include <fmt/ranges.h>
#include <algorithm>

namespace snug::base {

UserErrors::UserErrors(std::vector<std::string> mistakes)
    : UserError(fmt::format("{}", fmt::join(mistakes, "\n"))), mistakes_(std::move(mistakes)) {}

void Mistakes::add(const std::string& message, const Location& location) {
  std::string mistake = to_string(location) + message;
  if (std::find(all_.begin(), all_.end(), mistake) == all_.end())
    all_.push_back(std::move(mistake));
}

void Mistakes::throw_if_any() const {
  if (all_.size() == 1) throw UserError(all_.front());
  if (!all_.empty()) throw UserErrors(all_);
}

}  // namespace snug::base
