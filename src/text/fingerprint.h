// A hash of 64 bits of everything that was added (XXH3), to tell whether two lots of data are the
// same. One thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

struct XXH3_state_s;

namespace snug::text {

class Fingerprint {
 public:
  Fingerprint();

  void add(const void* bytes, int64_t size);
  std::string text() const;  // 16 hexadecimal digits

 private:
  struct Free {
    void operator()(XXH3_state_s* state) const;
  };
  std::unique_ptr<XXH3_state_s, Free> state_;
};

}  // namespace snug::text
