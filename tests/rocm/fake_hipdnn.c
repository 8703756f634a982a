/* AMD's hipDNN on a machine without it: the host's library, which this one is linked to, with engines that are asked for what AMD's library asks
 * its providers for. They declare version 1.2 of the plugin interface at most.
 */
int hipdnnHostSetPluginApi_ext(int minor);

__attribute__((constructor)) static void play_providers(void) { hipdnnHostSetPluginApi_ext(2); }
