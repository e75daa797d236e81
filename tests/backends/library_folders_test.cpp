// Where NVIDIA's libraries are looked for in a Python environment.
#include "backends/cuda/library_folders.h"

#include <gtest/gtest.h>

#include "../base/temporary_folder.h"

namespace snug::backends::cuda {
namespace {

namespace fs = std::filesystem;
const std::string kLibrary = "libcublasLt.so.13";

TEST(LibraryFolders, are_those_of_packages_that_hold_the_library) {
  const snug::testing::TemporaryFolder environment;
  const std::string packages = "lib/python3.12/site-packages/nvidia/";
  const fs::path library = environment.write(packages + "cu13/lib/" + kLibrary, "x");
  environment.write(packages + "cudnn/lib/libcudnn.so.9", "x");
  EXPECT_EQ(python_library_folders(environment.path(), kLibrary),
            std::vector<fs::path>{library.parent_path()});
}

TEST(LibraryFolders, are_none_without_an_environment) {
  EXPECT_TRUE(python_library_folders("", kLibrary).empty());
  EXPECT_TRUE(python_library_folders("no such folder", kLibrary).empty());
}

}  // namespace
}  // namespace snug::backends::cuda
