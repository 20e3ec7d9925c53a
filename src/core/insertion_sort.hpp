// A stable sort for the few dimensions of a tensor; std::stable_sort would allocate memory.
#pragma once

namespace dmlops {

template <class T, class Before>
void insertion_sort(T* items, int count, const Before& before) {
  for (int i = 1; i < count; ++i) {
    const T item = items[i];
    int k = i;
    for (; k > 0 && before(item, items[k - 1]); --k) items[k] = items[k - 1];
    items[k] = item;
  }
}

}  // namespace dmlops
