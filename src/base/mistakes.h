// Collects several mistakes of a user, so that one run reports all of them.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/error.h"

namespace snug::base {

// More than one mistake, each with its location. what() has one per line.
class UserErrors : public UserError {
 public:
  explicit UserErrors(std::vector<std::string> mistakes);
  const std::vector<std::string>& mistakes() const { return mistakes_; }

 private:
  std::vector<std::string> mistakes_;
};

// Collects mistakes. A mistake that is found twice counts once.
class Mistakes {
 public:
  // Runs the step, and keeps the UserError that it throws, if any.
  template <typename Step>
  void gather(Step&& step) {
    try {
      std::forward<Step>(step)();
    } catch (const UserErrors& errors) {
      for (const std::string& mistake : errors.mistakes()) add(mistake);
    } catch (const UserError& error) {
      add(error.what());
    }
  }
  void add(const std::string& message, const Location& location = {});

  bool empty() const { return all_.empty(); }
  // Throws what was kept: a UserError for one mistake, UserErrors for several. Mistakes that have a
  // line come first, those of a file in the order of its lines; the others follow in the order in
  // which they were found.
  void throw_if_any() const;

 private:
  std::vector<std::string> all_;
};

}  // namespace snug::base
