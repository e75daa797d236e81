#include "text/source/parquet/metadata.h"

#include <algorithm>

#include "text/source/parquet/compact.h"

namespace snug::text::parquet {
namespace {

using Field = CompactReader::Field;

// The older annotation of a column.
Meaning meaning_of_converted(int32_t type) {
  switch (type) {
    case 0:   // UTF8
    case 4:   // ENUM
    case 19:  // JSON
      return Meaning::text;
    case 1:
    case 2:
      return Meaning::map;
    case 3:
      return Meaning::list;
    case 11:
    case 12:
    case 13:
    case 14:
      return Meaning::unsigned_integer;
    case 15:
    case 16:
    case 17:
    case 18:
      return Meaning::none;  // integers of so many bits
    default:
      return Meaning::other;
  }
}

// The newer one, a union of which one field is there.
Meaning read_logical(CompactReader& reader) {
  Meaning meaning = Meaning::other;
  reader.read_struct([&](const Field& field) {
    switch (field.id) {
      case 1:   // STRING
      case 4:   // ENUM
      case 12:  // JSON
        meaning = Meaning::text;
        break;
      case 2:
        meaning = Meaning::map;
        break;
      case 3:
        meaning = Meaning::list;
        break;
      case 10: {  // INTEGER: bits, whether it is signed
        bool is_signed = true;
        reader.read_struct([&](const Field& of_integer) {
          if (of_integer.id == 2) is_signed = reader.read_boolean(of_integer);
          return of_integer.id == 2;
        });
        meaning = is_signed ? Meaning::none : Meaning::unsigned_integer;
        return true;
      }
      default:
        break;
    }
    return false;
  });
  return meaning;
}

SchemaElement read_element(CompactReader& reader) {
  SchemaElement element;
  std::optional<Meaning> logical;
  reader.read_struct([&](const Field& field) {
    switch (field.id) {
      case 1: {
        const int32_t type = reader.read_i32();
        if (type < 0 || type > static_cast<int32_t>(Physical::fixed_bytes))
          throw Damaged("a column is of an unknown type");
        element.physical = static_cast<Physical>(type);
        return true;
      }
      case 2:
        element.width = reader.read_i32();
        return true;
      case 3: {
        const int32_t repetition = reader.read_i32();
        if (repetition < 0 || repetition > 2) throw Damaged("a column repeats in an unknown way");
        element.repetition = static_cast<Repetition>(repetition);
        return true;
      }
      case 4:
        element.name = reader.read_binary();
        return true;
      case 5:
        element.children = reader.read_i32();
        return true;
      case 6:
        element.meaning = meaning_of_converted(reader.read_i32());
        return true;
      case 10:
        logical = read_logical(reader);
        return true;
      default:
        return false;
    }
  });
  if (logical) element.meaning = *logical;
  return element;
}

struct ChunkOffsets {
  int64_t data = 0;
  int64_t dictionary = 0;
};

void read_chunk_metadata(CompactReader& reader, ColumnChunk& chunk, ChunkOffsets& offsets) {
  reader.read_struct([&](const Field& field) {
    switch (field.id) {
      case 4:
        chunk.codec = static_cast<Codec>(reader.read_i32());
        return true;
      case 5:
        chunk.values = reader.read_integer();
        return true;
      case 7:
        chunk.bytes = reader.read_integer();
        return true;
      case 9:
        offsets.data = reader.read_integer();
        return true;
      case 11:
        offsets.dictionary = reader.read_integer();
        return true;
      default:
        return false;
    }
  });
}

ColumnChunk read_chunk(CompactReader& reader, int64_t file_bytes) {
  ColumnChunk chunk;
  ChunkOffsets offsets;
  bool is_there = false;
  reader.read_struct([&](const Field& field) {
    if (field.id == 1) throw Damaged("a column lies in another file, which is not read");
    if (field.id != 3) return false;
    is_there = true;
    read_chunk_metadata(reader, chunk, offsets);
    return true;
  });
  if (!is_there) throw Damaged("a column has no metadata; is it encrypted?");
  // Some writers leave 0 where there is no dictionary.
  chunk.begin = offsets.dictionary > 0 ? std::min(offsets.dictionary, offsets.data) : offsets.data;
  if (chunk.values == 0) return {};  // of no rows, some writers say no place
  if (chunk.begin < 4 || chunk.bytes < 0 || chunk.values < 0 || chunk.bytes > file_bytes ||
      chunk.begin > file_bytes - chunk.bytes)
    throw Damaged("a column lies outside of the file");
  return chunk;
}

RowGroup read_group(CompactReader& reader, int64_t file_bytes) {
  RowGroup group;
  reader.read_struct([&](const Field& field) {
    if (field.id == 1)
      reader.read_list([&] { group.columns.push_back(read_chunk(reader, file_bytes)); });
    else if (field.id == 3)
      group.rows = reader.read_integer();
    else
      return false;
    return true;
  });
  return group;
}

void read_data_header(CompactReader& reader, PageHeader& page) {
  reader.read_struct([&](const Field& field) {
    switch (field.id) {
      case 1:
        page.values = reader.read_i32();
        return true;
      case 2:
        page.encoding = static_cast<Encoding>(reader.read_i32());
        return true;
      case 3:
      case 4:
        if (static_cast<Encoding>(reader.read_i32()) != Encoding::rle)
          page.level_encoding = Encoding::bit_packed;
        return true;
      default:
        return false;
    }
  });
}

void read_data_v2_header(CompactReader& reader, PageHeader& page) {
  reader.read_struct([&](const Field& field) {
    switch (field.id) {
      case 1:
        page.values = reader.read_i32();
        return true;
      case 4:
        page.encoding = static_cast<Encoding>(reader.read_i32());
        return true;
      case 5:
        page.definition_bytes = reader.read_i32();
        return true;
      case 6:
        page.repetition_bytes = reader.read_i32();
        return true;
      case 7:
        page.is_packed = reader.read_boolean(field);
        return true;
      default:
        return false;
    }
  });
}

void read_dictionary_header(CompactReader& reader, PageHeader& page) {
  reader.read_struct([&](const Field& field) {
    if (field.id == 1)
      page.values = reader.read_i32();
    else if (field.id == 2)
      page.encoding = static_cast<Encoding>(reader.read_i32());
    else
      return false;
    return true;
  });
}

}  // namespace

FileMetadata parse_metadata(std::string_view footer, int64_t file_bytes) {
  CompactReader reader(footer);
  FileMetadata file;
  reader.read_struct([&](const Field& field) {
    switch (field.id) {
      case 2:
        reader.read_list([&] { file.schema.push_back(read_element(reader)); });
        return true;
      case 3:
        file.rows = reader.read_integer();
        return true;
      case 4:
        reader.read_list([&] { file.groups.push_back(read_group(reader, file_bytes)); });
        return true;
      case 8:
        file.is_encrypted = true;
        return false;
      default:
        return false;
    }
  });
  return file;
}

PageHeader parse_page_header(std::string_view bytes) {
  CompactReader reader(bytes);
  PageHeader page;
  reader.read_struct([&](const Field& field) {
    switch (field.id) {
      case 1:
        page.type = static_cast<PageHeader::Type>(reader.read_i32());
        return true;
      case 2:
        page.bytes = reader.read_i32();
        return true;
      case 3:
        page.packed_bytes = reader.read_i32();
        return true;
      case 5:
        read_data_header(reader, page);
        return true;
      case 7:
        read_dictionary_header(reader, page);
        return true;
      case 8:
        read_data_v2_header(reader, page);
        return true;
      default:
        return false;
    }
  });
  if (page.bytes < 0 || page.packed_bytes < 0 || page.values < 0 || page.definition_bytes < 0 ||
      page.repetition_bytes < 0)
    throw Damaged("a page has a negative size");
  page.header_bytes = static_cast<int64_t>(reader.at());
  return page;
}

}  // namespace snug::text::parquet
