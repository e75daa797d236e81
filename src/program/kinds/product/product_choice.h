// What a target decides of a product of matrices.
#pragma once

#include <cstdint>
#include <tuple>

#include "program/kinds/field.h"
#include "program/kinds/product/product_algorithm.h"

namespace snug::program {

// What computes a product, and how much of the inner dimension is summed before the sums in c are
// read and written again. 0: all of it.
struct ProductChoice {
  ProductAlgorithm algorithm = ProductAlgorithm::loops;
  int64_t sum_step = 0;
  bool operator==(const ProductChoice&) const = default;
};

// Rows of c that are made at once, what computes so many, and what the last rows where those are
// fewer. 0: all rows.
struct EdgedChoice {
  int64_t block_rows = 0;
  ProductChoice main = {};
  ProductChoice rest = {};
  bool operator==(const EdgedChoice&) const = default;
  // Not part of the rate key (Priced::alike): block_rows is what fits a cache, the same for all
  // shapes; sum_step follows from the inner size, which the key's shape has.
  static constexpr std::tuple kParts{
      Part{"algorithm", Priced::by_kind, &EdgedChoice::main, &ProductChoice::algorithm},
      Part{"block_rows", Priced::alike, &EdgedChoice::block_rows},
      Part{"rest_algorithm", Priced::by_word, &EdgedChoice::rest, &ProductChoice::algorithm},
      Part{"sum_step", Priced::alike, &EdgedChoice::main, &ProductChoice::sum_step},
      Part{"rest_sum_step", Priced::alike, &EdgedChoice::rest, &ProductChoice::sum_step}};
};

// Which operands a library's product copies to be without gaps between their rows before it reads
// them; and whether it makes c without gaps, of what was there where it adds to that, and copies it
// to where it belongs.
struct DenseOperands {
  bool a = false;
  bool b = false;
  bool addend = false;
  bool c = false;
  bool operator==(const DenseOperands&) const = default;
  constexpr DenseOperands& operator|=(const DenseOperands& other) {
    a |= other.a;
    b |= other.b;
    addend |= other.addend;
    c |= other.c;
    return *this;
  }
  // Priced alike: the name says that there are some, and the cost has the bytes of each.
  static constexpr std::tuple kParts{Part{"dense_a", Priced::alike, &DenseOperands::a},
                                     Part{"dense_b", Priced::alike, &DenseOperands::b},
                                     Part{"dense_addend", Priced::alike, &DenseOperands::addend},
                                     Part{"dense_c", Priced::alike, &DenseOperands::c}};
};

}  // namespace snug::program
