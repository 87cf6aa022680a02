// Memory of one call: counted by a first pass over what is needed, handed out by a second.
#pragma once

#include <cstdint>
#include <memory>

class Scratch {
  public:
    // needs.lay_out(scratch) takes every array that `needs` works with.
    template <class Needs> void furnish(Needs& needs) {
        needs.lay_out(*this);
        memory.reset(new char[used + LINE]);
        start = memory.get() + (LINE - reinterpret_cast<uintptr_t>(memory.get()) % LINE);
        used = 0;
        needs.lay_out(*this);
    }

    template <class T> void take(T*& array, int64_t count) {
        array = reinterpret_cast<T*>(start + used);
        used += (count * sizeof(T) + LINE - 1) / LINE * LINE;
    }

  private:
    static constexpr int64_t LINE = 64;  // bytes; vectors should not lie across two cache lines
    std::unique_ptr<char[]> memory;
    char* start = nullptr;
    int64_t used = 0;
};
