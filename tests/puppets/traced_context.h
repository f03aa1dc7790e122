#pragma once

void set_thread_context(void* record);
