// That the verifier sees each await of a program that is missing or misplaced.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "program/ir/program.h"
#include "program/kinds/kind.h"
#include "program/verify/verify.h"

namespace snug::testing {

// Whether both touch one tensor, or views of it.
inline bool touch_one(const program::Program& program, const program::Operation& a,
                      const program::Operation& b) {
  bool found = false;
  program::for_each_tensor(a, [&](program::TensorId x) {
    program::for_each_tensor(
        b, [&](program::TensorId y) { found = found || program.owner(x) == program.owner(y); });
  });
  return found;
}

// Each await is left out, moved before the copy that it ends, and moved after the next operation
// that touches what was copied, be there one. Returns how many awaits there are.
inline int expect_awaits_in_place(const program::Program& right) {
  EXPECT_EQ(program::verify(right), std::vector<std::string>{});
  int awaits = 0;
  const auto& operations = right.operations;
  for (auto await = operations.begin(); await != operations.end(); ++await) {
    if (await->kind() != program::Kind::await) continue;
    ++awaits;
    const auto expect_seen = [&](const char* how, auto place) {
      program::Program changed = right;
      auto& list = changed.operations;
      const program::Operation moved = *await;
      list.erase(list.begin() + (await - operations.begin()));
      place(list, moved);
      EXPECT_NE(program::verify(changed), std::vector<std::string>{})
          << right.name << ": await " << await - operations.begin() << " " << how;
    };
    expect_seen("left out", [](auto&, const auto&) {});
    const auto touches = [&](const program::Operation& other) {
      return touch_one(right, other, *await);
    };
    const auto begins =
        std::find_if(std::make_reverse_iterator(await), operations.rend(), [&](const auto& other) {
          return program::traits_of(other).copying == program::Copying::begins && touches(other);
        });
    if (begins == operations.rend()) continue;  // it has begun in another program
    const auto begun_at = begins.base() - 1 - operations.begin();
    expect_seen("too early", [&](auto& list, const auto& moved) {
      list.insert(list.begin() + begun_at, moved);
    });
    const auto user = std::find_if(await + 1, operations.end(), touches);
    if (user == operations.end()) continue;
    expect_seen("too late", [&](auto& list, const auto& moved) {
      list.insert(list.begin() + (user - operations.begin()), moved);
    });
  }
  return awaits;
}

}  // namespace snug::testing
