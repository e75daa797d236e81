// `snug bench products`: the rate that oneDNN reaches on the shapes of a job, which is what its
// step could reach if it did nothing but multiply.
//
// Every product of job_products.h runs alone, with its operands where they were a moment ago, and
// the fastest of several runs counts: whole, and in pieces along each of its three dimensions,
// since oneDNN multiplies long ones faster in pieces. A piece is timed once and counted as often as
// it occurs; what adds pieces up is left out. So the rate is one that a step can hardly reach.
// Next to it stands what Snug's own choice of kernels makes of the same products, alone too.
#pragma once

#include <vector>

#include "bench/job_products.h"
#include "formats/recipe/recipe.h"

namespace snug::bench {

struct ProductRate {
  JobProduct product;
  backends::cpu::MatmulSpec piece;  // the fastest way; the product itself where whole is fastest
  double seconds = 0;               // of one whole product made that way
  double own_seconds = 0;           // made as a step makes it
};

// Runs each product until `least_seconds` are spent on each way to make it, at least three times.
// Uses the current number of OpenMP threads.
std::vector<ProductRate> measure_products(const std::vector<JobProduct>& products,
                                          double least_seconds);

// The verb: the recipe's training step on this machine. Prints a table, or JSON: threads,
// libraries, products (m, n, k, types, count, flops, seconds, piece) and for all of them, the wide
// and the narrow ones flops, seconds and flops_per_second of a step, each of oneDNN and own_.
// Returns 0. Throws UserError.
int products(const formats::Recipe& recipe, bool json);

}  // namespace snug::bench
