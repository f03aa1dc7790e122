#pragma once

namespace inject {

// Labels of the calling thread. An empty value takes a label away. False: set_last_error() was told why not.
bool set_label(const char* key, const char* value);
void clear_labels();

}  // namespace inject
