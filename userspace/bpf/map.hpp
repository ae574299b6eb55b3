// SPDX-License-Identifier: Apache-2.0
// Typed access to BPF maps. The maps are owned by their skeleton or, for pinned ones, by a descriptor.
#pragma once

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include <optional>
#include <string>
#include <vector>

#include "core/result.hpp"

namespace gradlane {

// A map with keys K and values V, both plain structs of the contract headers.
template <typename K, typename V>
class Map {
 public:
  explicit Map(const bpf_map* map) : fd_(bpf_map__fd(map)), name_(bpf_map__name(map)) {}

  Status set(const K& key, const V& value) const {
    if (const int error = bpf_map_update_elem(fd_, &key, &value, BPF_ANY)) {
      return system_error("write map", name_, error);
    }
    return {};
  }
  // The value; an error also where there is none.
  Result<V> get(const K& key) const {
    V value{};
    if (const int error = bpf_map_lookup_elem(fd_, &key, &value)) {
      return system_error("read map", name_, error);
    }
    return value;
  }
  // Removing what is not there is no error.
  Status remove(const K& key) const {
    if (const int error = bpf_map_delete_elem(fd_, &key); error != 0 && error != -ENOENT) {
      return system_error("remove from map", name_, error);
    }
    return {};
  }

 private:
  int fd_;
  std::string name_;
};

// A per-processor map; values come one for each processor that the kernel may ever have.
template <typename K, typename V>
class PerProcessorMap {
 public:
  explicit PerProcessorMap(const bpf_map* map) : fd_(bpf_map__fd(map)), name_(bpf_map__name(map)) {}

  Result<std::vector<V>> get(const K& key) const {
    static_assert(sizeof(V) % 8 == 0, "the kernel pads values to 8 bytes");
    const int processors = libbpf_num_possible_cpus();
    if (processors < 0) return system_error("count", "processors", processors);
    std::vector<V> values(static_cast<std::size_t>(processors));
    if (const int error = bpf_map_lookup_elem(fd_, &key, values.data())) {
      return system_error("read map", name_, error);
    }
    return values;
  }

 private:
  int fd_;
  std::string name_;
};

}  // namespace gradlane
