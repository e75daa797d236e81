// Runs a function as each rank of a group of threads.
#pragma once

#include <exception>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "comm/local.h"

namespace snug::comm {

// What each rank threw, empty where it did not.
inline std::vector<std::string> errors_of_ranks(int ranks, const LocalOptions& options,
                                                const std::function<void(Communicator&)>& run) {
  LocalGroup group(ranks, options);
  std::vector<std::string> errors(ranks);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      try {
        const auto communicator = group.communicator(rank);
        run(*communicator);
      } catch (const std::exception& error) {
        errors[rank] = error.what();
      }
    });
  for (std::thread& thread : threads) thread.join();
  return errors;
}

}  // namespace snug::comm
