// Splits loop nests into shards for the threads.
#include "traversal/run.hpp"

#include "traversal/layout.hpp"
#include "traversal/policy.hpp"

namespace dmlops {

void run(const Nest& nest, char* const* data, RowKernel kernel, const void* parameters) {
  LoopLayout layout(nest, data, streams(nest, data));
  const std::int64_t work = nest.bytes_per_element + layout.packing_work();
  layout.run(shard_count(work * element_count(nest)), kernel, parameters);
}

}  // namespace dmlops
