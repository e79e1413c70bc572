/* The smallest dynamic module of Envoy with an HTTP filter: the filter lets everything pass. Envoy looks each
   function up by its name when it loads the module. */
#define PASSES(event) long envoy_dynamic_module_on_http_filter_##event(void) { return 0; }
#define MAKES(what) const void *envoy_dynamic_module_on_http_filter_##what##_new(void) { return envoy_dynamic_module_on_program_init(); }

const char *envoy_dynamic_module_on_program_init(void) { return "any"; }
MAKES(config)
MAKES(per_route_config)
const void *envoy_dynamic_module_on_http_filter_new(void) { return envoy_dynamic_module_on_program_init(); }
PASSES(config_destroy)
PASSES(config_http_callout_done)
PASSES(config_http_stream_complete)
PASSES(config_http_stream_data)
PASSES(config_http_stream_headers)
PASSES(config_http_stream_reset)
PASSES(config_http_stream_trailers)
PASSES(config_scheduled)
PASSES(destroy)
PASSES(downstream_above_write_buffer_high_watermark)
PASSES(downstream_below_write_buffer_low_watermark)
PASSES(http_callout_done)
PASSES(http_stream_complete)
PASSES(http_stream_data)
PASSES(http_stream_headers)
PASSES(http_stream_reset)
PASSES(http_stream_trailers)
PASSES(local_reply)
PASSES(per_route_config_destroy)
PASSES(request_body)
PASSES(request_headers)
PASSES(request_trailers)
PASSES(response_body)
PASSES(response_headers)
PASSES(response_trailers)
PASSES(scheduled)
PASSES(stream_complete)
