/* A program that profiles itself: CPU time and memory, to a file, or to where the environment says.
 *
 *   cc orders.c -o orders $(pkg-config --cflags --libs ddprof)
 *   ./orders orders.pb.gz && ddprof report orders.pb.gz */
#include <ddprof.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct order {
  struct order* next;
  char text[4000];
};

static struct order* orders; /* all are remembered, and none is ever needed again */

static unsigned price(const struct order* order) {
  unsigned sum = 0;
  for (int round = 0; round < 20; ++round)
    for (size_t i = 0; i < sizeof order->text; ++i) sum = sum * 31 + (unsigned char)order->text[i];
  return sum;
}

static void remember_order(int number) {
  struct order* order = malloc(sizeof *order);
  if (!order) return;
  memset(order->text, number, sizeof order->text);
  order->next = orders;
  orders = order;
}

int main(int argc, char** argv) {
  ddprof_options options = {.size = sizeof options};
  options.service = "orders";
  options.preset = "cpu_live_heap";
  options.output = argc > 1 ? argv[1] : NULL;
  if (ddprof_start(&options) != 0) fprintf(stderr, "not profiled: %s\n", ddprof_last_error());
  if (!(ddprof_status() & DDPROF_MEMORY)) fprintf(stderr, "no memory: %s\n", ddprof_last_error());

  unsigned sum = 0;
  for (int number = 0; number < 10000; ++number) {
    ddprof_label_set("customer", number % 2 ? "odd" : "even");
    remember_order(number);
    sum += price(orders);
    ddprof_label_clear("customer");
  }
  printf("10000 orders, %u\n", sum);
  if (ddprof_stop() != 0) fprintf(stderr, "profile: %s\n", ddprof_last_error());
  return 0;
}
