// `snug bench products`: the rate that oneDNN reaches on the matrix products of a job, which is the
// rate that a step would have if it did nothing but multiply.
//
// Every product of job_products.h runs alone, on operands that were used a moment ago, and the
// fastest of several runs counts. It runs whole, and in pieces along each of its three dimensions,
// since oneDNN multiplies long products faster in pieces. A piece is timed once and counted as
// often as it occurs; adding up the pieces is not counted. So a real step can hardly reach this
// rate. The table also shows the rate of the kernels that Snug chooses for the same products, run
// alone as well.
#pragma once

#include <vector>

#include "bench/job_products.h"
#include "formats/recipe/recipe.h"

namespace snug::bench {

struct ProductRate {
  JobProduct product;
  backends::cpu::MatmulSpec piece;  // the fastest piece; the whole product where that is fastest
  double seconds = 0;               // of one whole product computed from such pieces
  double own_seconds = 0;           // of one whole product as a training step computes it
};

// Runs each product, in each way to cut it, for at least `least_seconds` and at least three times.
// Uses the current number of OpenMP threads.
std::vector<ProductRate> measure_products(const std::vector<JobProduct>& products,
                                          double least_seconds);

// The command: measures the recipe's training step on this machine. Prints a table, or JSON with
// threads, libraries and products (m, n, k, types, count, flops, seconds, piece); and, for all
// products, the wide ones and the narrow ones, the flops, seconds and flops_per_second of a step,
// for oneDNN and, in keys with the prefix own_, for Snug's kernels. Returns 0. Throws UserError.
int products(const formats::Recipe& recipe, bool json);

}  // namespace snug::bench
