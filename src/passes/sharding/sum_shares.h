// sum_shares: sums the results that each rank computes from its own rows only
// (Traits::sums_over_ranks), so that later operations read the sum over all ranks.
//
//   before   %kl_sums = kl_estimate(%policy, %reference, %labels)
//            %measures, %loss = kto(%policy, %reference, %labels, %kl_sums, ...)
//   after    %kl_sums = kl_estimate(%policy, %reference, %labels)
//            all_reduce() updates (%kl_sums) channel interconnect
//            await() updates (%kl_sums)
//            %measures, %loss = kto(%policy, %reference, %labels, %kl_sums, ...)
#pragma once

#include "passes/sharding/sharding.h"
#include "program/ir/program.h"

namespace snug::passes {

program::Program sum_shares(program::Program program, const ShardingOptions& options,
                            const program::Target& target);

}  // namespace snug::passes
